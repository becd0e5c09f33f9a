import "./ui/tokens.css";
import "./ui/base.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient, sessionStore } from "./app";
import { App } from "./routes";
import { SessionProvider } from "./session";
import { landAfterSignOut } from "./shell/leaving";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");

landAfterSignOut();
createRoot(root).render(
  <StrictMode>
    <SessionProvider store={sessionStore}>
      <QueryClientProvider client={queryClient}>
        <App />
      </QueryClientProvider>
    </SessionProvider>
  </StrictMode>,
);
