import { loginUrl } from "@vestibule/session";
import { Orders } from "./orders";

export default function Page() {
  return (
    <main>
      <h1>Orders</h1>
      <Orders signIn={loginUrl("/")} />
    </main>
  );
}
