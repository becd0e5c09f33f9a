# Lets a request pass if its X-Auth-Assertion is valid, and greets its user.
require 'json'
require 'jwt'
require 'open-uri'
require 'rack'
require 'rack/handler/webrick' # with Rack 3: rackup/handler/webrick, Rackup::Handler::WEBrick

ISSUER, AUDIENCE = ENV.fetch('VESTIBULE_ISSUER'), ENV.fetch('AUDIENCE')
KEYS_URL = URI(ENV.fetch('KEYS_URL', "#{ISSUER}/.well-known/vestibule/jwks.json"))
RULES = { algorithms: ['ES256'], iss: ISSUER, verify_iss: true, aud: AUDIENCE, verify_aud: true, leeway: 5,
          required_claims: %w[exp sub email] }.freeze

class RequireUser
  def initialize(app)
    @app, @lock, @keys, @asked = app, Mutex.new, { keys: [] }, Time.at(0)
  end

  def call(env)
    user, header = JWT.decode(env['HTTP_X_AUTH_ASSERTION'], nil, true, jwks: method(:keys), **RULES)
    raise JWT::DecodeError, 'another type' unless header['typ'] == 'JWT'
  rescue StandardError
    [401, { 'Content-Type' => 'text/plain' }, ["No valid assertion\n"]]
  else
    @app.call(env.merge('user' => { subject: user['sub'], email: user['email'] }))
  end

  # Keys live five minutes. An unknown key ID fetches them again, at most every ten seconds.
  def keys(options)
    @lock.synchronize do
      next @keys if Time.now - @asked < (options[:kid_not_found] ? 10 : 300)

      @keys, @asked = { keys: [] }, Time.now
      @keys = JSON.parse(KEYS_URL.read(open_timeout: 5, read_timeout: 5))
    end
  end
end

app = RequireUser.new(->(env) { [200, { 'Content-Type' => 'text/plain' }, ["Hello #{env['user'][:email]}\n"]] })
# Rack gives X_Auth_Assertion and X-Auth-Assertion one name: the server has to reject the first.
reject = ->(request, _) { raise WEBrick::HTTPStatus::Unauthorized if request['x_auth_assertion'] }
Rack::Handler::WEBrick.run(app, Host: '127.0.0.1', Port: ENV.fetch('PORT', '8080').to_i, RequestCallback: reject)
