// The order of the site, from a first run to the background. Each page is a path in the repository; its title is the
// first heading. `every(folder)` adds the other pages of a folder by title. `make docs` needs a place for each page.

/** All pages of a folder that no section names. */
export const every = (folder) => ({ every: folder });

export const NAVIGATION = [
  { text: 'Use', pages: [
    'README.md', 'docs/one-program.md', 'docs/providers.md', 'docs/gateway.md', 'docs/routes.md', 'docs/machines.md', 'docs/cross-app-access.md', 'docs/decision-points.md', 'docs/device-bound.md',
    'docs/frames.md', 'docs/signals.md', 'docs/global-token-revocation.md', 'docs/look.md',
  ] },
  { text: 'Operate', pages: [
    'docs/operating.md', 'docs/vault.md', 'docs/settings.md', 'docs/doctor.md', 'docs/sign-in-fails.md', 'docs/slow-requests.md', 'docs/operators.md', 'docs/audit-log.md', 'docs/metrics.md',
    'docs/objectives.md', 'docs/runbooks.md', 'docs/scaling.md', 'docs/supply-chain.md',
  ] },
  { text: 'Operate on Kubernetes', pages: [
    'docs/kubernetes/README.md', 'docs/kubernetes/install.md', 'docs/kubernetes/helm.md', 'docs/kubernetes/images.md', 'docs/kubernetes/tls.md',
    'docs/kubernetes/redis.md', 'docs/kubernetes/protecting-applications.md', 'docs/kubernetes/application-teams.md', 'docs/kubernetes/sizes.md', every('docs/kubernetes'),
  ] },
  { text: 'Integrate', pages: ['docs/verify.md', 'docs/session-api.md', 'docs/web.md', 'docs/integrations/README.md', every('docs/integrations')] },
  { text: 'Migrate', pages: ['docs/migrate/README.md', every('docs/migrate')] },
  { text: 'Understand', pages: [
    'docs/architecture.md', 'docs/security.md', 'docs/performance.md', 'docs/chaos.md', 'docs/comparison.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md',
    'docs/decisions/README.md',
  ] },
  { text: 'Decisions', collapsed: true, pages: [every('docs/decisions')] },
];
