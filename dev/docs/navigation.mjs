// The order of the site: for somebody who is new, from top to bottom. A page is its path in the repository, its title the first heading.
// `every(folder)` is the pages of a folder that are named nowhere, by title. A page without a place fails `make docs`.

/** All pages of a folder that no section names. */
export const every = (folder) => ({ every: folder });

export const NAVIGATION = [
  { text: 'Start', pages: ['README.md', 'docs/architecture.md', 'docs/comparison.md', 'CHANGELOG.md'] },
  { text: 'In front of applications', pages: [
    'docs/providers.md', 'docs/doctor.md', 'docs/gateway.md', 'docs/routes.md', 'docs/device-bound.md', 'docs/signals.md', 'docs/machines.md', 'docs/integrations/README.md', every('docs/integrations'),
  ] },
  { text: 'For developers', pages: ['docs/session-api.md', 'docs/web.md', 'docs/look.md'] },
  { text: 'Operating', pages: [
    'docs/operating.md', 'docs/settings.md', 'docs/sign-in-fails.md', 'docs/slow-requests.md', 'docs/audit-log.md', 'docs/metrics.md',
    'docs/objectives.md', 'docs/runbooks.md', 'docs/scaling.md', 'docs/performance.md', 'docs/chaos.md',
  ] },
  { text: 'Kubernetes', pages: [
    'docs/kubernetes/README.md', 'docs/kubernetes/install.md', 'docs/kubernetes/helm.md', 'docs/kubernetes/images.md', 'docs/kubernetes/tls.md',
    'docs/kubernetes/redis.md', 'docs/kubernetes/protecting-applications.md', 'docs/kubernetes/application-teams.md', 'docs/kubernetes/sizes.md', every('docs/kubernetes'),
  ] },
  { text: 'Security', pages: ['docs/security.md', 'docs/supply-chain.md', 'SECURITY.md'] },
  { text: 'Take part', pages: ['CONTRIBUTING.md', 'docs/decisions/README.md'] },
  { text: 'Decisions', collapsed: true, pages: [every('docs/decisions')] },
];
