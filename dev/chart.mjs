// Writes the generated files of the Helm chart, as `make gen` does.
//
//   node dev/chart.mjs                                 writes k8s/chart/files and k8s/chart/README.md
//   node dev/chart.mjs --path                          prints the path of helm; installs it if missing
import { pathToFileURL } from 'node:url';

import { kubernetesTools } from './lib/helm.mjs';

const say = (text) => process.stdout.write(`${text}\n`);

/** Installs the packages before it imports the modules that need them. */
export async function makeChart(report = say) {
  await kubernetesTools(report);
  const { writeChart } = await import('./chart/write.mjs');
  writeChart();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  if (process.argv.includes('--path')) say((await kubernetesTools(() => {})).helm);
  else {
    await makeChart().catch((error) => {
      process.stderr.write(`${error.message}\n`);
      process.exitCode = 1;
    });
  }
}
