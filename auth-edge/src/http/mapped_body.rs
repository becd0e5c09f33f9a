//! A body that passes each poll through a closure, for code that bounds, counts or cuts bodies.
//!
//! The combinators of http-body-util and tower-http (`map_frame`, `TimeoutBody`) hide a body's length and
//! whether it has ended. This one passes both on: they decide the framing, and whether a body needs watching.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The outcome of polling a body.
pub(crate) type PolledFrame<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// A body that passes its outcomes through a closure.
struct MappedBody<B, F> {
    body: B,
    map: F,
}

/// Wraps `body` so that `map` sees and may change the outcome of each poll, [`Poll::Pending`] too.
pub(crate) fn map_polls<B, F, E>(body: B, map: F) -> impl Body<Data = Bytes, Error = E>
where
    B: Body<Data = Bytes> + Unpin,
    F: FnMut(&mut Context<'_>, PolledFrame<B::Error>) -> PolledFrame<E> + Unpin,
{
    MappedBody { body, map }
}

impl<B, F, E> Body for MappedBody<B, F>
where
    B: Body<Data = Bytes> + Unpin,
    F: FnMut(&mut Context<'_>, PolledFrame<B::Error>) -> PolledFrame<E> + Unpin,
{
    type Data = Bytes;
    type Error = E;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<E> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(context);
        (this.map)(context, polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
