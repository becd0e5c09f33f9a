import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { currentSessionQuery } from "../api/queries";
import type { TheftNoticeProps } from "./TheftNotice";

const Notices = lazy(() => import("./Notices"));

/** Explains to a person why an earlier session was ended. Few sessions have such a notice. */
export function SessionNotices(props: TheftNoticeProps) {
  // The guard reads the session and keeps it current.
  const { data } = useQuery({ ...currentSessionQuery, enabled: false });
  if (!data?.session.theftAt && !data?.session.operatorNotice) return null;
  return (
    <Suspense fallback={null}>
      <Notices {...props} />
    </Suspense>
  );
}
