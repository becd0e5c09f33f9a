/** The path of the app on its host, without the last slash. */
const base = import.meta.env.BASE_URL.replace(/\/$/, "");

/** The addresses of the pages. */
export const paths = {
  home: `${base}/`,
  account: `${base}/account`,
  sessions: `${base}/account/sessions`,
  session: `${base}/account/session`,
  operator: `${base}/operator`,
  signedOut: `${base}/signed-out`,
  signInError: `${base}/sign-in-error`,
} as const;
