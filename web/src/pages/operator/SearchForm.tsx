import { type FormEvent, useState } from "react";
import type { Provider } from "../../api/operator";
import { Button } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { SelectField, TextField } from "../../ui/Field";
import { operatorWords } from "../../words/operator";
import { KINDS, type Search } from "./filter";
import styles from "./Operator.module.css";

const say = operatorWords.search;
const MINUTE_MS = 60_000;

export interface SearchFormProps {
  providers: readonly Provider[];
  /** The search of the address; null for the empty form. */
  search: Search | null;
  issuer: string;
  submit: (search: Search) => void;
}

/** The fields of a search. They follow the address, so that back and forward show their search. */
export function SearchForm({ providers, search, issuer, submit }: SearchFormProps) {
  const empty: Search = { issuer, kind: "email", value: "", afterMs: null, beforeMs: null };
  const [shown, setShown] = useState(search);
  const [fields, setFields] = useState(search ?? empty);
  if (JSON.stringify(shown) !== JSON.stringify(search)) {
    setShown(search);
    setFields(search ?? empty);
  }
  const set = (change: Partial<Search>) => setFields({ ...fields, ...change });
  const send = (event: FormEvent) => {
    event.preventDefault();
    submit({ ...fields, value: fields.value.trim() });
  };
  const ranged = fields.afterMs !== null || fields.beforeMs !== null;
  return (
    <Card title={say.label}>
      <form className={styles.form} onSubmit={send}>
        <div className={styles.fields}>
          {providers.length > 1 && (
            <SelectField
              label={operatorWords.provider}
              value={fields.issuer}
              onValue={(chosen) => set({ issuer: chosen })}
              options={providers.map((provider) => [provider.issuer, provider.name || provider.issuer])}
            />
          )}
          <SelectField
            label={say.kind}
            value={fields.kind}
            onValue={(kind) => set({ kind })}
            hint={fields.kind === "everyone" ? say.hints.everyone : undefined}
            options={KINDS.map((kind) => [kind, say.kinds[kind]])}
          />
          {fields.kind !== "everyone" && (
            <TextField
              label={say.value}
              hint={say.hints[fields.kind]}
              value={fields.value}
              onValue={(value) => set({ value })}
              problem={fields.value.trim() === "" ? say.missing : ""}
              autoComplete="off"
            />
          )}
        </div>
        <details className={styles.range} open={ranged || undefined}>
          <summary>{say.range}</summary>
          <div className={styles.fields}>
            <TextField
              type="datetime-local"
              label={say.after}
              value={toLocal(fields.afterMs)}
              onValue={(text) => set({ afterMs: fromLocal(text) })}
            />
            <TextField
              type="datetime-local"
              label={say.before}
              value={toLocal(fields.beforeMs)}
              onValue={(text) => set({ beforeMs: fromLocal(text) })}
            />
          </div>
        </details>
        <div className={styles.buttons}>
          <Button look="primary" type="submit">
            {say.submit}
          </Button>
        </div>
      </form>
    </Card>
  );
}

/** A time as the browser's date field has it: in local time, without a zone. */
function toLocal(ms: number | null): string {
  if (ms === null) return "";
  return new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16);
}

function fromLocal(text: string): number | null {
  const ms = new Date(text).getTime();
  return Number.isNaN(ms) ? null : ms;
}
