// VitePress' own theme with the colours of the product, and diagrams.
import { defineAsyncComponent } from 'vue';
// Without its font: the font of the system needs no download.
import Theme from 'vitepress/theme-without-fonts';

import './style.css';

export default {
  extends: Theme,
  enhanceApp({ app }) {
    app.component('Mermaid', defineAsyncComponent(() => import('./Mermaid.vue')));
  },
};
