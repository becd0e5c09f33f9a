//! A body each of whose polls goes through a closure: one wrapper for all that bounds, counts or cuts bodies.
//!
//! The combinators of http-body-util and tower-http that pass frames on (`map_frame`, `TimeoutBody`) hide how long a body is
//! and whether it has ended. Both are passed on here: they decide the framing of what is sent, and whether a body is worth
//! watching.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};

/// What polling a body gives.
pub(crate) type PolledFrame<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// A body whose outcomes go through a closure.
struct MappedBody<B, F> {
    body: B,
    map: F,
}

/// `body`, of which `map` changes each outcome: it gets the outcome of each poll, [`Poll::Pending`] too.
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
