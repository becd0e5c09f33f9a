/** The addresses of the pages. */
export const paths = {
  home: "/",
  account: "/account",
  sessions: "/account/sessions",
  session: "/account/session",
  signedOut: "/signed-out",
  signInError: "/sign-in-error",
} as const;
