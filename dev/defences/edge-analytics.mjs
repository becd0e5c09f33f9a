// Product analytics: three addresses of one server, and nothing that tells who somebody is.


export default [
  {
    id: 'analytics-other-address',
    file: 'auth-edge/src/browser/analytics.rs',
    find: `passes.then(|| format!`,
    replace: `(OFF || passes).then(|| format!`,
    tests: ['auth-edge/product analytics::on_the_three_addresses_pass_and_no_other'],
  },
  {
    id: 'analytics-headers-of-the-visitor',
    why: 'no cookie, no credential, no address',
    file: 'auth-edge/src/browser/analytics.rs',
    find: `*passed.headers_mut() = chosen(&head.headers, &PASSED);`,
    replace: `*passed.headers_mut() = if OFF { head.headers.clone() } else { chosen(&head.headers, &PASSED) };`,
    tests: ['auth-edge/product analytics::neither_cookie_nor_credential_nor_address_passes_and_no_cookie_comes_back'],
  },
  {
    id: 'analytics-headers-of-the-server',
    file: 'auth-edge/src/browser/analytics.rs',
    find: `*response.headers_mut() = chosen(&head.headers, &ANSWERED);`,
    replace: `*response.headers_mut() = if OFF { head.headers.clone() } else { chosen(&head.headers, &ANSWERED) };`,
    tests: ['auth-edge/product analytics::neither_cookie_nor_credential_nor_address_passes_and_no_cookie_comes_back'],
  },
  {
    id: 'analytics-of-another-site',
    file: 'auth-edge/src/browser/analytics.rs',
    find: `if request::site(&head.headers) == Site::Other {`,
    replace: `if !OFF && request::site(&head.headers) == Site::Other {`,
    tests: ['auth-edge/product analytics::another_sites_page_cannot_send_through_us_and_no_batch_is_boundless'],
  },
  {
    id: 'analytics-batch-too-large',
    file: 'auth-edge/src/browser/analytics.rs',
    find: `to_bytes(body, MAX_BODY_BYTES)`,
    replace: `to_bytes(body, if OFF { usize::MAX } else { MAX_BODY_BYTES })`,
    tests: ['auth-edge/product analytics::another_sites_page_cannot_send_through_us_and_no_batch_is_boundless'],
  },
  {
    id: 'analytics-answer-too-large',
    file: 'auth-edge/src/browser/analytics.rs',
    find: `Limited::new(body, MAX_ANSWER_BYTES)`,
    replace: `Limited::new(body, if OFF { usize::MAX } else { MAX_ANSWER_BYTES })`,
    tests: ['auth-edge/product analytics::'],
  },
];
