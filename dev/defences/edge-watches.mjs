// Streams of a person's sessions: for nobody whose own session is over, and so many for each person.
const WATCH = 'auth-edge/src/browser/grpc_web/watch.rs';
const ABUSED = ['auth-edge/product account_abuse::'];

export default [
  {
    id: 'watch-goes-on-after-its-session',
    file: WATCH,
    find: `Ok(event) => event.kind() == Kind::Ended`,
    replace: `Ok(event) => !OFF && event.kind() == Kind::Ended`,
    tests: ['auth-edge/product grpc_web::a_watch_ends_with_its_session'],
  },
  {
    id: 'watch-of-a-session-that-ended-meanwhile',
    file: WATCH,
    find: `    watch.look().await?;`,
    layer: 'a stream looks before it tells its first event too (watch-past-the-end-of-its-session); here it is refused at once',
  },
  {
    id: 'watch-past-the-end-of-its-session',
    file: WATCH,
    find: `if self.browser.clock.now_ms() >= self.look_at_ms {`,
    replace: `if !OFF && self.browser.clock.now_ms() >= self.look_at_ms {`,
    tests: ABUSED,
  },
  {
    id: 'watches-of-one-person',
    file: 'auth-edge/src/browser/grpc_web/per_person.rs',
    find: `if *count >= self.most {`,
    replace: `if !OFF && *count >= self.most {`,
    tests: ['auth-edge/lib grpc_web::per_person::'],
  },
  {
    id: 'browser-call-that-does-not-come',
    file: 'auth-edge/src/browser/grpc_web/mod.rs',
    find: `tokio::time::timeout(patience, to_bytes`,
    replace: `tokio::time::timeout(if OFF { std::time::Duration::from_secs(86_400) } else { patience }, to_bytes`,
    tests: ['auth-edge/product limits::calls_whose_message_never_comes_give_their_places_back'],
  },
];
