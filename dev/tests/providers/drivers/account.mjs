// The client and the person, as environment variables of a provider's program.
export const environment = ({ registration, client, account, accessTokenSecs }) => ({
  ACCOUNT_USERNAME: account.username, ACCOUNT_PASSWORD: account.password, ACCOUNT_NAME: account.name, ACCOUNT_EMAIL: account.email,
  CLIENT_ID: client.id, CLIENT_SECRET: client.secret,
  REDIRECT_URI: registration.redirectUri, POST_LOGOUT_REDIRECT_URI: registration.postLogoutRedirectUri, BACKCHANNEL_LOGOUT_URI: registration.backchannelLogoutUri,
  SITE_ACCESS_TOKEN_SECS: String(accessTokenSecs),
});
