import { useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { Button } from "../ui/Button";
import { words } from "../words";
import styles from "./Analytics.module.css";
import { type Answer, answered, keepAnswer } from "./consent";
import { isRecorded } from "./pages";
import type { Project } from "./project";
import type { Recorder } from "./recorder";

const say = words.analytics;

/** Asks the person for consent to usage recording, applies the answer, and offers to change it. */
export default function Analytics({ project }: { project: Project }) {
  const [answer, setAnswer] = useState<Answer | null>(answered);
  const [path] = useLocation();
  const recorder = useRef<Recorder | null>(null);
  const wanted = answer === "yes" && isRecorded(path);

  useEffect(() => {
    recorder.current?.follow(path);
  }, [path]);

  useEffect(() => {
    if (!wanted || recorder.current) return;
    let gone = false;
    import("./recorder")
      .then(({ startRecording }) => {
        if (!gone) recorder.current = startRecording(project);
      })
      .catch(() => {
        // A failed load of the code means no recording; the page works without it.
      });
    return () => {
      gone = true;
    };
  }, [wanted, project]);

  // A recording ends when its person signs out or another person signs in.
  useEffect(
    () => () => {
      recorder.current?.stop();
      recorder.current = null;
    },
    [],
  );

  const decide = (next: Answer) => {
    keepAnswer(next);
    setAnswer(next);
    if (next === "no") {
      recorder.current?.stop();
      recorder.current = null;
    }
  };
  if (!isRecorded(path)) return null;
  return (
    <section className={styles.card} aria-label={say.label}>
      <div className={styles.words}>
        <h2 className={styles.title}>{answer === null ? say.ask : answer === "yes" ? say.on : say.off}</h2>
        {answer === null && <p className={styles.detail}>{say.detail}</p>}
      </div>
      <div className={styles.actions}>
        {answer !== "no" && (
          <Button small onClick={() => decide("no")}>
            {answer === null ? say.no : say.stop}
          </Button>
        )}
        {answer !== "yes" && (
          <Button small onClick={() => decide("yes")}>
            {answer === null ? say.yes : say.start}
          </Button>
        )}
      </div>
    </section>
  );
}
