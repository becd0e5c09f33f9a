/**
 * Sends protobuf-es messages over the grpc-web runtime.
 *
 * Unary calls use the binary format. Streams need the text format: in binary the browser delivers nothing before
 * the end. Every call carries `x-csrf`, which a page of another origin cannot send without a preflight request.
 */
import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { GrpcWebClientBase, MethodDescriptor } from "grpc-web";
import { toRpcFailure } from "./rpc-error";
import { traceparent } from "./trace";

// A person is waiting: after this time, an error with a retry is better than a longer wait.
const UNARY_DEADLINE_MS = 10_000;

const unaryClient = new GrpcWebClientBase({ format: "binary" });
const streamClient = new GrpcWebClientBase({ format: "text" });

const path = (method: DescMethodUnary | DescMethodServerStreaming) =>
  `/${method.parent.typeName}/${method.name}`;

function descriptor<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O> | DescMethodServerStreaming<I, O>,
): MethodDescriptor<MessageShape<I>, MessageShape<O>> {
  // The runtime stores the message constructors but never calls them; protobuf-es has none.
  const unused = Object as unknown as new () => never;
  return new MethodDescriptor<MessageShape<I>, MessageShape<O>>(
    path(method),
    method.methodKind,
    unused,
    unused,
    (request: MessageShape<I>) => toBinary(method.input, request),
    (bytes: Uint8Array) => fromBinary(method.output, bytes),
  );
}

/** Calls a unary method. Rejects with `RpcFailure`, or with the reason of `signal` if it aborts the call. */
export async function call<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  signal?: AbortSignal,
): Promise<MessageShape<O>> {
  const metadata = {
    "x-csrf": "1",
    traceparent: traceparent(),
    deadline: String(Date.now() + UNARY_DEADLINE_MS),
  };
  // The published type lacks the options, but the runtime accepts them.
  const client = unaryClient as unknown as {
    unaryCall(
      path: string,
      request: MessageShape<I>,
      metadata: Record<string, string>,
      descriptor: MethodDescriptor<MessageShape<I>, MessageShape<O>>,
      options: { signal?: AbortSignal },
    ): Promise<MessageShape<O>>;
  };
  try {
    const message = create(method.input, request);
    return await client.unaryCall(
      path(method),
      message,
      metadata,
      descriptor(method),
      signal ? { signal } : {},
    );
  } catch (cause) {
    if (signal?.aborted) throw signal.reason;
    throw toRpcFailure(cause);
  }
}

/** The callbacks of a stream's reader. */
export interface StreamReader<T> {
  message: (message: T) => void;
  /** Called once: with the error, or with null if the server ended the stream normally. */
  end: (failure: ReturnType<typeof toRpcFailure> | null) => void;
}

/** Opens a server stream. The returned function closes it; no callback runs after that. */
export function open<I extends DescMessage, O extends DescMessage>(
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  reader: StreamReader<MessageShape<O>>,
): () => void {
  const metadata = { "x-csrf": "1", traceparent: traceparent() };
  const message = create(method.input, request);
  const stream = streamClient.serverStreaming(path(method), message, metadata, descriptor(method));
  let over = false;
  const end = (failure: ReturnType<typeof toRpcFailure> | null) => {
    if (over) return;
    over = true;
    reader.end(failure);
  };
  stream.on("data", (data) => {
    if (!over) reader.message(data);
  });
  stream.on("error", (error) => end(toRpcFailure(error)));
  stream.on("end", () => end(null));
  return () => {
    over = true;
    stream.cancel();
  };
}
