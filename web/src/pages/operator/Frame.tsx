/** The frame of each operators' page: its navigation, and the purpose, without which the service answers nothing. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useRoute } from "wouter";
import { Page } from "../../shell/Page";
import { Button } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { words } from "../../words";
import { operatorWords } from "../../words/operator";
import { operatorPaths } from "./filter";
import styles from "./Operator.module.css";
import { keepPurpose, readPurpose } from "./purpose";
import { StoredText } from "./StoredText";
import { cleanText } from "./text";

const say = operatorWords.purpose;

export interface FrameProps {
  title: string;
  heading?: ReactNode;
  lead?: ReactNode;
  /** The operator ("sub"), whose purpose the tab keeps. */
  subject: string;
  children: (purpose: string) => ReactNode;
}

export function Frame({ title, heading, lead, subject, children }: FrameProps) {
  const [purpose, setPurpose] = useState(() => readPurpose(subject));
  const [changing, setChanging] = useState(false);
  const [justKept, setJustKept] = useState(false);
  const keep = (next: string) => {
    keepPurpose(subject, next);
    setPurpose(next);
    setChanging(false);
    setJustKept(true);
  };
  return (
    <div className={styles.console}>
      <Page title={title} heading={heading} lead={lead}>
        <nav className={styles.pages} aria-label={operatorWords.pages.label}>
          <ul>
            <Tab to={operatorPaths.search}>{operatorWords.pages.search}</Tab>
            <Tab to={operatorPaths.activity}>{operatorWords.pages.activity}</Tab>
          </ul>
        </nav>
        {purpose === "" || changing ? (
          <PurposeForm
            purpose={purpose}
            focusFirst={changing}
            keep={keep}
            cancel={changing ? () => keep(purpose) : undefined}
          />
        ) : (
          <PurposeLine purpose={purpose} takeFocus={justKept} change={() => setChanging(true)} />
        )}
        {purpose !== "" && children(purpose)}
      </Page>
    </div>
  );
}

function Tab({ to, children }: { to: string; children: string }) {
  const [here] = useRoute(to);
  return (
    <li>
      <Link to={to} aria-current={here ? "page" : undefined}>
        {children}
      </Link>
    </li>
  );
}

function PurposeLine(props: { purpose: string; takeFocus: boolean; change: () => void }) {
  const line = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // The form had the focus, and it is gone.
    if (props.takeFocus) line.current?.querySelector("button")?.focus();
  }, [props.takeFocus]);
  return (
    <div ref={line} className={styles.purpose}>
      <p>
        <span className={styles.muted}>{say.label}: </span>
        <bdi>{props.purpose}</bdi>
      </p>
      <Button small look="quiet" onClick={props.change}>
        {say.change}
      </Button>
    </div>
  );
}

interface PurposeFormProps {
  purpose: string;
  focusFirst: boolean;
  keep: (purpose: string) => void;
  cancel: (() => void) | undefined;
}

function PurposeForm({ purpose, focusFirst, keep, cancel }: PurposeFormProps) {
  const [text, setText] = useState(purpose);
  const field = useRef<HTMLElement>(null);
  useEffect(() => {
    if (focusFirst) field.current?.focus();
  }, [focusFirst]);
  return (
    <Card title={say.ask}>
      <p className={styles.muted}>{say.detail}</p>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          keep(cleanText(text));
        }}
      >
        <StoredText label={say.label} hint={say.hint} value={text} onValue={setText} focus={field} required />
        <div className={styles.buttons}>
          <Button look="primary" type="submit">
            {say.save}
          </Button>
          {cancel && (
            <Button look="quiet" onClick={cancel}>
              {words.sessions.cancel}
            </Button>
          )}
        </div>
      </form>
    </Card>
  );
}
