//! Messages out of gRPC's frames: tonic's codec, but for reading.
//!
//! tonic lets prost read out of the connection's shared buffer, which is moved on for every number and every string. A message
//! that is there lies in one piece, so here it is read as a slice.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::Buf as _;
use tonic::Status;
use tonic::codec::{DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// Writes `T` and reads `U`.
#[derive(Debug)]
pub(crate) struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + 'static,
    U: Message + Default + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = SliceDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        SliceDecoder(PhantomData)
    }
}

/// Reads `U`.
#[derive(Debug)]
pub(crate) struct SliceDecoder<U>(PhantomData<U>);

impl<U: Message + Default> Decoder for SliceDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let length = message.remaining();
        let read = if message.chunk().len() == length {
            let read = U::decode(message.chunk());
            message.advance(length);
            read
        } else {
            U::decode(message)
        };
        // As tonic's own codec reports it.
        read.map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}
