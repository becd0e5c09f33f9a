import { SessionProvider } from "@vestibule/session";

export const metadata = { title: "Orders" };

/** Rendered on the server: the package says by itself which of its parts run in the browser too. */
export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>
        <SessionProvider>{children}</SessionProvider>
      </body>
    </html>
  );
}
