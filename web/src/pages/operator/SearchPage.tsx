import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import { INVALID_ARGUMENT, RpcFailure } from "../../api/rpc-error";
import { useServerNow } from "../../clock";
import { Button } from "../../ui/Button";
import { Notice } from "../../ui/Notice";
import { inDigits, operatorWords } from "../../words/operator";
import { EndDialog } from "./EndDialog";
import { Frame } from "./Frame";
import { addressOf, issuerOf, type Kind, type Search, searchOf } from "./filter";
import styles from "./Operator.module.css";
import type { Props } from "./person";
import { providerName } from "./person";
import { foundOf, foundQuery } from "./queries";
import { SearchForm } from "./SearchForm";
import { SessionTable, TableSkeleton } from "./SessionTable";
import { Trouble } from "./Trouble";

const say = operatorWords.search;
const TICK_MS = 10_000;
// The searches whose sessions one request can end, besides those of a person.
const ENDABLE = new Set<Kind>(["everyone", "provider_sid"]);
// These need no list besides those that every service keeps.
const ALWAYS_POSSIBLE = new Set<Kind>(["subject", "handle", "provider_sid"]);

/** Finds sessions of all people. The address holds the search, so that back and reload show it again. */
export function SearchPage({ providers, operator }: Props) {
  const [params] = useSearchParams();
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const issuers = providers.map(({ issuer }) => issuer);
  const search = searchOf(params, issuers);
  const submit = (next: Search) => {
    // The same search again is a new request.
    if (search && addressOf(next) === addressOf(search))
      void queries.resetQueries({ queryKey: ["operator", "found"] });
    else navigate(addressOf(next));
  };
  return (
    <Frame title={say.title} lead={say.lead} subject={operator}>
      {(purpose) => (
        <>
          <SearchForm
            providers={providers}
            search={search}
            issuer={issuerOf(params, issuers) ?? issuers[0] ?? ""}
            submit={submit}
          />
          {search && (
            <Results key={addressOf(search)} purpose={purpose} search={search} providers={providers} />
          )}
        </>
      )}
    </Frame>
  );
}

function Results({
  purpose,
  search,
  providers,
}: { purpose: string; search: Search } & Pick<Props, "providers">) {
  const query = useInfiniteQuery(foundQuery(purpose, search));
  const { data, error, hasNextPage, isFetching } = query;
  const found = data ? foundOf(data) : { sessions: [], examined: 0, skewMs: 0 };
  const now = useServerNow(found.skewMs, TICK_MS);
  const [asking, setAsking] = useState(false);
  const [outcome, setOutcome] = useState("");
  const outcomeBox = useRef<HTMLDivElement>(null);
  const count = found.sessions.length;
  const said = !data
    ? error
      ? ""
      : say.searching
    : hasNextPage
      ? count === 0
        ? say.examined(inDigits(found.examined))
        : say.examinedSome(inDigits(found.examined), inDigits(count))
      : count === 0
        ? say.none
        : say.found(inDigits(count), count === 1);
  return (
    <section className={styles.results} aria-label={say.results}>
      <div ref={outcomeBox} tabIndex={-1} aria-live="polite" className={styles.outcome}>
        {outcome && <Notice kind="good" icon="check" title={outcome} />}
      </div>
      <div className={styles.head}>
        <p role="status">{said}</p>
        {ENDABLE.has(search.kind) && count > 0 && (
          <Button small look="danger" onClick={() => setAsking(true)}>
            {say.endAll}
          </Button>
        )}
      </div>
      {!data && !error && <TableSkeleton />}
      {data && !hasNextPage && count === 0 && <p className={styles.muted}>{say.noneHint}</p>}
      {count > 0 && <SessionTable sessions={found.sessions} now={now} />}
      {error && (
        <Trouble
          title={say.failed}
          error={error}
          detail={detailOf(error, search.kind)}
          busy={isFetching}
          retry={query.isFetchNextPageError ? query.fetchNextPage : query.refetch}
        />
      )}
      {hasNextPage && !error && (
        <div className={styles.buttons}>
          <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            {query.isFetchingNextPage ? say.searching : count === 0 ? say.goOn : say.more}
          </Button>
        </div>
      )}
      {asking && (
        <EndDialog
          purpose={purpose}
          search={search}
          found={found.sessions}
          hasMore={hasNextPage}
          title={
            search.kind === "everyone"
              ? operatorWords.ending.askEveryone(providerName(providers, search.issuer))
              : operatorWords.ending.askFound
          }
          confirm={
            search.kind === "everyone" ? [providerName(providers, search.issuer), search.issuer] : undefined
          }
          onClose={(ended) => {
            setAsking(false);
            if (ended) setOutcome(ended);
            if (ended) void query.refetch();
          }}
          outcomeBox={outcomeBox}
        />
      )}
    </section>
  );
}

/** Names the setting that a search may lack: the service rejects a malformed value in the same way. */
function detailOf(error: Error, kind: Kind): string | undefined {
  if (!(error instanceof RpcFailure) || error.code !== INVALID_ARGUMENT) return undefined;
  return ALWAYS_POSSIBLE.has(kind) ? say.invalid : say.unavailable;
}
