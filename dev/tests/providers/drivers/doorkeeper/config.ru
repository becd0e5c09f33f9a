# A Rails application in one file: Doorkeeper and its OpenID Connect extension as documented, with sqlite.
# Its settings come from the environment.
require 'active_record'
require 'action_controller/railtie'
require 'doorkeeper'
require 'doorkeeper/openid_connect'

FOLDER = ENV.fetch('SITE_FOLDER')
ORIGIN = ENV.fetch('SITE_ORIGIN')

class Site < Rails::Application
  config.root = FOLDER
  config.eager_load = false
  config.secret_key_base = 'for-the-length-of-a-test'
  config.hosts.clear
  config.logger = Logger.new($stdout)
  config.log_level = :warn
  config.active_record = ActiveSupport::OrderedOptions.new unless config.respond_to?(:active_record)
  routes.append do
    use_doorkeeper
    use_doorkeeper_openid_connect
    get 'sign-in', to: 'sign_in#new'
    post 'sign-in', to: 'sign_in#create'
  end
end

ActiveRecord::Base.establish_connection(adapter: 'sqlite3', database: File.join(FOLDER, 'db.sqlite3'), timeout: 20_000, pool: 16)

class User < ActiveRecord::Base
end

Doorkeeper.configure do
  orm :active_record
  resource_owner_authenticator do
    User.find_by(id: session[:user]) || redirect_to("/sign-in?to=#{CGI.escape(request.fullpath)}")
  end
  skip_authorization { true } # an application of the house
  grant_flows %w[authorization_code]
  default_scopes :openid
  optional_scopes :profile, :email
  use_refresh_token
  access_token_expires_in ENV.fetch('SITE_ACCESS_TOKEN_SECS').to_i
  force_ssl_in_redirect_uri false
end

Doorkeeper::OpenidConnect.configure do
  issuer ORIGIN
  signing_key File.read(File.join(FOLDER, 'key.pem'))
  subject_types_supported [:public]
  resource_owner_from_access_token { |token| User.find_by(id: token.resource_owner_id) }
  auth_time_from_resource_owner(&:signed_in_at)
  reauthenticate_resource_owner { |_, to| redirect_to "/sign-in?to=#{CGI.escape(to)}" }
  select_account_for_resource_owner { |_, to| redirect_to "/sign-in?to=#{CGI.escape(to)}" }
  subject { |owner, _| owner.id.to_s }
  protocol { :http }
  claims do
    normal_claim(:name, scope: :profile) { |owner| owner.name }
    normal_claim(:email, scope: :email) { |owner| owner.email }
  end
end

class SignInController < ActionController::Base
  def new
    render inline: '<form method="post"><%= hidden_field_tag :authenticity_token, form_authenticity_token %><input type="hidden" name="to" value="<%= params[:to] %>"><input name="username"><input type="password" name="password"><button>Sign in</button></form>'
  end

  def create
    user = User.find_by(username: params[:username], password: params[:password])
    return head(:forbidden) unless user

    user.update!(signed_in_at: Time.now)
    session[:user] = user.id
    redirect_to params[:to]
  end
end

Site.initialize!

def make
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define do
    create_table(:users) do |t|
      %i[username password name email].each { |name| t.string name }
      t.datetime :signed_in_at
    end
    create_table(:oauth_applications) do |t|
      t.string :name, null: false
      t.string :uid, null: false, index: { unique: true }
      t.string :secret, null: false
      t.text :redirect_uri, null: false
      t.string :scopes, null: false, default: ''
      t.boolean :confidential, null: false, default: true
      t.timestamps null: false
    end
    create_table(:oauth_access_grants) do |t|
      t.references :resource_owner, null: false
      t.references :application, null: false
      t.string :token, null: false, index: { unique: true }
      t.integer :expires_in, null: false
      t.text :redirect_uri, null: false
      t.datetime :created_at, null: false
      t.datetime :revoked_at
      t.string :scopes, null: false, default: ''
      t.string :code_challenge
      t.string :code_challenge_method
    end
    create_table(:oauth_access_tokens) do |t|
      t.references :resource_owner
      t.references :application, null: false
      t.string :token, null: false, index: { unique: true }
      t.string :refresh_token, index: { unique: true }
      t.integer :expires_in
      t.datetime :revoked_at
      t.datetime :created_at, null: false
      t.string :scopes
      t.string :previous_refresh_token, null: false, default: ''
    end
    create_table(:oauth_openid_requests) do |t|
      t.references :access_grant, null: false
      t.string :nonce, null: false
    end
  end
  User.create!(username: ENV.fetch('ACCOUNT_USERNAME'), password: ENV.fetch('ACCOUNT_PASSWORD'), name: ENV.fetch('ACCOUNT_NAME'), email: ENV.fetch('ACCOUNT_EMAIL'))
  Doorkeeper::Application.create!(
    name: 'Vestibule', uid: ENV.fetch('CLIENT_ID'), secret: ENV.fetch('CLIENT_SECRET'), redirect_uri: ENV.fetch('REDIRECT_URI'), scopes: 'openid profile email', confidential: true
  )
end

make unless ActiveRecord::Base.connection.table_exists?(:users)
run Site
