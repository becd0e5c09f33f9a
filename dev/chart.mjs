// Writes the generated part of the Helm chart again, as `make gen` does.
//
//   node dev/chart.mjs                                 writes k8s/chart/templates/made, k8s/chart/files and k8s/chart/README.md
//   node dev/chart.mjs --path                          prints where helm is, for who has none
import { pathToFileURL } from 'node:url';

import { kubernetesTools } from './lib/helm.mjs';

const say = (text) => process.stdout.write(`${text}\n`);

/** Writes what of the chart is generated. The packages have to be there before what uses them is read. */
export async function makeChart(told = say) {
  const { kubectl } = await kubernetesTools(told);
  const { writeChart } = await import('./chart/write.mjs');
  writeChart(kubectl);
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
