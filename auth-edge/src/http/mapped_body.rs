//! A body on its way through: one wrapper, and what is done with each outcome of it as a closure.
//!
//! The combinators of http-body-util and tower-http that pass frames on (`map_frame`, `TimeoutBody`) hide how long a body is and
//! whether it has ended. Both are passed on here: they decide the framing of what is sent, and whether a body is worth watching.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};

/// What polling a body gives.
pub(crate) type PolledFrame<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// A body whose outcomes pass through a closure.
struct MappedBody<B, F> {
    body: B,
    pass: F,
}

/// `body`, of which `pass` gives on what it is told: the outcome of each poll, [`Poll::Pending`] too, and whether the body has ended with it.
pub(crate) fn map_polls<B, F, E>(body: B, pass: F) -> impl Body<Data = Bytes, Error = E>
where
    B: Body<Data = Bytes> + Unpin,
    F: FnMut(&mut Context<'_>, PolledFrame<B::Error>, bool) -> PolledFrame<E> + Unpin,
{
    MappedBody { body, pass }
}

impl<B, F, E> Body for MappedBody<B, F>
where
    B: Body<Data = Bytes> + Unpin,
    F: FnMut(&mut Context<'_>, PolledFrame<B::Error>, bool) -> PolledFrame<E> + Unpin,
{
    type Data = Bytes;
    type Error = E;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<E> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(context);
        (this.pass)(context, polled, this.body.is_end_stream())
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
