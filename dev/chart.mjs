// `make chart`: writes the generated part of the Helm chart again (`make gen` does it too), and prints what the chart says.
//
//   node dev/chart.mjs                                 writes k8s/chart/templates/made, k8s/chart/files and the table of docs/kubernetes/helm.md
//   node dev/chart.mjs --helm template vestibule k8s/chart …   runs helm
import { spawnSync } from 'node:child_process';
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
  const at = process.argv.indexOf('--helm');
  if (at < 0) await makeChart();
  else {
    const { helm } = await kubernetesTools(() => {});
    process.exitCode = spawnSync(helm, process.argv.slice(at + 1), { stdio: 'inherit' }).status ?? 1;
  }
}
