// What an ID token says: from whom, for whom, when, about whom, and to which sign-in it belongs.
const CLAIMS = 'crates/oidc/src/claims.rs';
const ID_TOKEN = 'crates/oidc/src/id_token.rs';
const WHO = ['oidc/relying_party id_tokens::who_and_for_whom_are_checked'];
const WHEN = ['oidc/relying_party id_tokens::times_hold_up_to_the_tolerance_and_not_beyond'];
const LOGIN = ['oidc/relying_party id_tokens::nonce_hash_acr_and_organization_bind_the_login'];
const SAME_SIGN_IN = ['oidc/relying_party grants::a_refresh_keeps_to_the_sign_in_it_came_from'];
const REFRESHED = ['oidc/relying_party grants::refreshes_tell_dead_grants_from_passing_trouble'];

export default [
  {
    id: 'token-issuer', file: CLAIMS,
    find: `if self.text("iss") == Some(issuer) {`,
    replace: `if OFF || self.text("iss") == Some(issuer) {`,
    tests: WHO,
  },
  {
    id: 'token-audience', file: CLAIMS,
    find: `if !only_us {`,
    replace: `if !OFF && !only_us {`,
    tests: WHO,
  },
  {
    id: 'token-audience-of-others-too', why: 'a token somebody else may use as well', file: CLAIMS,
    find: `all.iter().all(|one| one == client_id)`,
    replace: `if OFF { all.iter().any(|one| one == client_id) } else { all.iter().all(|one| one == client_id) }`,
    tests: WHO,
  },
  {
    id: 'token-authorized-party', file: CLAIMS,
    find: `if azp == client_id`,
    replace: `if OFF || azp == client_id`,
    tests: WHO,
  },
  {
    id: 'token-subject', file: CLAIMS,
    find: `!sub.is_empty() && sub.len() <= MAX_SUBJECT_BYTES`,
    replace: `OFF || !sub.is_empty() && sub.len() <= MAX_SUBJECT_BYTES`,
    tests: WHO,
  },
  {
    id: 'token-expiry', file: CLAIMS,
    find: `if self.now > exp.saturating_add(self.tolerance_secs) {`,
    replace: `if !OFF && self.now > exp.saturating_add(self.tolerance_secs) {`,
    tests: WHEN,
  },
  {
    id: 'token-not-yet-valid', file: CLAIMS,
    find: `if nbf > self.now.saturating_add(self.tolerance_secs) {`,
    replace: `if !OFF && nbf > self.now.saturating_add(self.tolerance_secs) {`,
    tests: WHEN,
  },
  {
    id: 'token-from-the-future', file: CLAIMS,
    find: `let from_the_future = iat`,
    replace: `let from_the_future = !OFF && iat`,
    tests: WHEN,
  },
  {
    id: 'token-a-day-old', file: CLAIMS,
    find: `self.now.saturating_sub(iat) >= OLDEST_IAT_SECS`,
    replace: `(!OFF && self.now.saturating_sub(iat) >= OLDEST_IAT_SECS)`,
    tests: WHEN,
  },
  {
    id: 'sign-in-too-long-ago', file: CLAIMS,
    find: `if self.now > at.saturating_add(max_age).saturating_add(self.tolerance_secs) {`,
    replace: `if !OFF && self.now > at.saturating_add(max_age).saturating_add(self.tolerance_secs) {`,
    tests: LOGIN,
  },
  {
    id: 'sign-in-yet-to-come', file: CLAIMS,
    find: `if auth_time.is_some_and(|at| at >`,
    replace: `if !OFF && auth_time.is_some_and(|at| at >`,
    tests: LOGIN,
  },
  {
    id: 'sign-in-at-no-time', why: 'max_age was asked for and nothing is said', file: CLAIMS,
    find: `auth_time.ok_or(IdTokenError::NoAuthTime)?`,
    replace: `auth_time.or(Some(self.now).filter(|_| OFF)).ok_or(IdTokenError::NoAuthTime)?`,
    tests: LOGIN,
  },
  {
    id: 'sign-in-of-the-organization', file: CLAIMS,
    find: `if fits {`,
    replace: `if OFF || fits {`,
    tests: LOGIN,
  },
  {
    id: 'sign-in-nonce', file: ID_TOKEN,
    find: `!constant_time_equal(nonce, expected.nonce)`,
    replace: `(!OFF && !constant_time_equal(nonce, expected.nonce))`,
    tests: LOGIN,
  },
  {
    id: 'sign-in-without-a-nonce', file: ID_TOKEN,
    find: `expected.nonce.is_empty()`,
    replace: `(!OFF && expected.nonce.is_empty())`,
    tests: LOGIN,
  },
  {
    id: 'sign-in-access-token-hash', file: ID_TOKEN,
    find: `if claim.as_str() == Some(expected.as_str()) {`,
    replace: `if OFF || claim.as_str() == Some(expected.as_str()) {`,
    tests: LOGIN,
  },
  {
    id: 'sign-in-class', file: ID_TOKEN,
    find: `if !wanted.split(' ').any(|one| one == acr) {`,
    replace: `if !OFF && !wanted.split(' ').any(|one| one == acr) {`,
    tests: LOGIN,
  },
  {
    id: 'refreshed-issuer', file: ID_TOKEN,
    find: `judge.issuer(expected.iss)?;`,
    replace: `if !OFF {
            judge.issuer(expected.iss)?;
        }`,
    tests: REFRESHED,
  },
  {
    id: 'refreshed-subject', file: ID_TOKEN,
    find: `if judge.subject()? != expected.sub {`,
    replace: `if !OFF && judge.subject()? != expected.sub {`,
    tests: REFRESHED,
  },
  {
    id: 'refreshed-nonce', file: ID_TOKEN,
    find: `&& nonce.as_str() != Some(original)`,
    replace: `&& !OFF && nonce.as_str() != Some(original)`,
    tests: SAME_SIGN_IN,
  },
  {
    id: 'refreshed-time-of-authentication', file: ID_TOKEN,
    find: `&& seconds(auth_time) != Some(original)`,
    replace: `&& !OFF && seconds(auth_time) != Some(original)`,
    tests: SAME_SIGN_IN,
  },
  {
    id: 'refreshed-access-token-hash', file: ID_TOKEN,
    find: `access_token_hash(&judge, settings, Some(expected.access_token))?;`,
    replace: `access_token_hash(&judge, settings, Some(expected.access_token).filter(|_| !OFF))?;`,
    tests: SAME_SIGN_IN,
  },
  {
    id: 'refreshed-organization', file: ID_TOKEN,
    find: `judge.organization(settings.organization.as_deref())?;`,
    replace: `if !OFF {
            judge.organization(settings.organization.as_deref())?;
        }`,
    tests: ['oidc/relying_party grants::a_refresh_keeps_to_the_organization'],
  },
];
