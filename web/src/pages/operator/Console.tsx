import { useQuery } from "@tanstack/react-query";
import { Route, Switch } from "wouter";
import { useSession } from "../../session";
import { PageSkeleton } from "../../shell/PageSkeleton";
import { ActivityPage } from "./ActivityPage";
import { operatorPaths } from "./filter";
import { PersonPage } from "./PersonPage";
import { providersQuery } from "./queries";
import { SearchPage } from "./SearchPage";
import { TroublePage } from "./Trouble";

/** The pages for people who may see and end the sessions of others. The list of providers shows whether they may. */
export function Console() {
  const { user } = useSession();
  const { data, error, refetch, isFetching } = useQuery(providersQuery(user?.sub ?? ""));
  if (!user) return null;
  if (!data) {
    if (!error) return <PageSkeleton />;
    return <TroublePage error={error} busy={isFetching} retry={refetch} />;
  }
  const props = { providers: data, operator: user.sub };
  return (
    <Switch>
      <Route path={operatorPaths.person}>
        <PersonPage {...props} />
      </Route>
      <Route path={operatorPaths.activity}>
        <ActivityPage {...props} />
      </Route>
      <Route>
        <SearchPage {...props} />
      </Route>
    </Switch>
  );
}
