import { OperatorNotice } from "./OperatorNotice";
import { TheftNotice, type TheftNoticeProps } from "./TheftNotice";

/** What an earlier session leaves for this one to say; loaded if there is something. */
export default function Notices(props: TheftNoticeProps) {
  return (
    <>
      <OperatorNotice />
      <TheftNotice {...props} />
    </>
  );
}
