/** The style sheet of the page: light and dark, wide and narrow, screen and paper. */

const light = `--page:#f6f7f9;--surface:#fff;--ink:#16191d;--muted:#5a626d;--line:#d5d9df;
--link:#0b5cad;--warn-ink:#7a4b00;--warn:#fff1d6;--bad-ink:#a3201a;--bad:#fde6e4;
--good-ink:#0b6240;--good:#dff4ea;--even-ink:#3d4651;--even:#e8ebef;
--s0:#6b7280;--s1:#0072b2;--s2:#c94f00;--s3:#00795a;--s4:#a8447d;--s5:#5b4bc4;--s6:#86690a;
--s7:#7a3b12;--k1:#3b82c4;--k2:#e08a3c;--k3:#6aa68c;--k4:#9a86c9;`;

const dark = `--page:#14171b;--surface:#1c2025;--ink:#e8eaed;--muted:#a3abb6;--line:#3a414a;
--link:#7db8f5;--warn-ink:#ffd591;--warn:#43310f;--bad-ink:#ffb4ae;--bad:#4a1f1c;
--good-ink:#9fe3c4;--good:#173b2c;--even-ink:#cfd5dc;--even:#333a43;
--s0:#a0a8b4;--s1:#56b4e9;--s2:#ff924a;--s3:#35cfa0;--s4:#f08cc3;--s5:#a99bff;--s6:#e3c34b;
--s7:#d9a27a;--k1:#5b9bd8;--k2:#e39a55;--k3:#74b79b;--k4:#a997d6;`;

const base = `
*{box-sizing:border-box}
html{font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
body{margin:0;background:var(--page);color:var(--ink)}
main{max-width:1320px;margin:0 auto;padding:12px 24px 60px}
h1{font-size:1.4rem;line-height:1.25;margin:.1em 0 .3em;max-width:96ch;text-wrap:balance}
.unbroken{white-space:nowrap}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.paper{display:none}
h2{font-size:1.1rem;margin:0 0 .5em}
h3{font-size:.95rem;margin:0 0 .35em}
h4{font-size:.85rem;margin:1em 0 .2em}
p{margin:.35em 0;max-width:110ch}
a{color:var(--link)}
code,pre{font:.86em/1.45 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
code{overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--page);padding:10px;margin:.3em 0;
max-height:32em;overflow:auto;border:1px solid var(--line);border-radius:4px}
.kicker{color:var(--muted);font-size:.86rem;margin:0}
.lead{color:var(--muted)}
.note,.path,.range,caption{color:var(--muted);font-size:.82rem}
.note{max-width:110ch}
ul.note{padding-left:1.2em;margin:.4em 0}
.none{color:var(--muted);font-style:italic;font-size:.86rem}
section,aside{background:var(--surface);border:1px solid var(--line);border-radius:8px;
padding:12px 16px;margin:14px 0}
.summary{display:grid;grid-template-columns:minmax(0,1fr) 320px;gap:14px;align-items:start}
.summary>*{margin:0}
.notices{list-style:none;display:flex;flex-wrap:wrap;gap:6px;padding:0;margin:.5em 0 .7em}
.notices li{background:var(--warn);color:var(--warn-ink);border-radius:4px;padding:2px 9px;
font-size:.86rem}
.notices a{color:inherit}
.strong{font-weight:650}
`;

const tables = `
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:0 0 4px}
th,td{text-align:left;vertical-align:top;padding:4px 14px 4px 0;border-bottom:1px solid var(--line)}
thead th{color:var(--muted);font-weight:600;white-space:nowrap;vertical-align:bottom}
tbody th{font-weight:600}
.number{text-align:right;white-space:nowrap}
section .scroll+.scroll{margin-top:10px}
.inside table{margin:.6em 0}
table.cost{width:100%}
.cost th,.cost td{padding:4px 12px 4px 0;line-height:1.36}
.cost td b{font-size:1.02rem;white-space:nowrap}
.path,.range{display:block;font-weight:400}
.range{white-space:nowrap}
.cost .path{max-width:25ch}
summary .path{display:inline}
.noise{background:color-mix(in srgb,var(--even) 45%,transparent)}
.badge{display:inline-block;border-radius:3px;padding:0 6px;font-size:.78rem;font-weight:600;
white-space:nowrap;background:var(--even);color:var(--even-ink)}
.badge.loss,.badge.invalid{background:var(--bad);color:var(--bad-ink)}
.badge.gain,.badge.valid,.badge.pass{background:var(--good);color:var(--good-ink)}
.badge.warn,.badge.inconclusive{background:var(--warn);color:var(--warn-ink)}
.stamp{margin:0;font-size:.85rem}
.stamp div{display:grid;grid-template-columns:76px minmax(0,1fr);gap:8px;padding:3px 0;
border-bottom:1px solid var(--line)}
.stamp div:last-child{border:0}
.stamp dt{color:var(--muted)}
.stamp dd{margin:0;overflow-wrap:anywhere}
details{border-top:1px solid var(--line)}
summary{cursor:pointer;padding:6px 2px;font-weight:550}
summary:hover{background:var(--page)}
.inside{padding:2px 0 12px 16px;scroll-margin-top:3.2em}
.inside caption{white-space:nowrap}
.long{margin-bottom:14px}
.reason{color:var(--bad-ink);background:var(--bad);border-radius:4px;padding:3px 9px}
.files{columns:3 240px;font-size:.85rem;padding-left:1.2em;margin:.4em 0}
`;

const figures = `
figure{margin:0 0 10px;min-width:0}
.plots{display:grid;gap:8px 22px;align-items:start}
.cpu{grid-template-columns:minmax(0,5fr) minmax(0,7fr)}
.two{grid-template-columns:repeat(2,minmax(0,1fr))}
.three{grid-template-columns:repeat(3,minmax(0,1fr))}
figure svg{color:var(--ink);--plot-background:var(--surface);font:11.5px system-ui,sans-serif;
display:block;width:100%;height:auto;min-width:340px}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;padding:0;margin:0 0 4px;
font-size:.84rem}
.key{display:inline-block;width:26px;height:0;vertical-align:middle;margin-right:6px}
`;

const narrow = `
@media (max-width:1020px){.summary{grid-template-columns:minmax(0,1fr)}
.two,.three,.cpu{grid-template-columns:minmax(0,1fr)}}
@media (max-width:640px){main{padding:10px 10px 40px}h1{font-size:1.2rem}
section,aside{padding:10px}.inside{padding-left:4px}
.cost,.cost tbody,.cost tr,.cost th,.cost td{display:block}
.cost thead{display:none}
.cost tr{border-bottom:1px solid var(--line);padding:6px 4px}
.cost th,.cost td{border:0;padding:2px 0}
.cost .path{max-width:none}
.cost td{display:grid;grid-template-columns:7.5em minmax(0,1fr)}
.cost td>*{grid-column:2}
.cost td::before{content:attr(data-label);color:var(--muted);font-size:.84rem;grid-row:1}}
`;

/** Paper is light, has no scroll bars and breaks between rows. */
const paper = `
@page{size:A4;margin:12mm}
@media print{
html{font-size:11px}
body{background:none}
main{max-width:none;padding:0}
section,aside{border:0;padding:0;margin:0 0 16px;background:none}
.summary{grid-template-columns:minmax(0,1fr)}
.cpu{grid-template-columns:minmax(0,5fr) minmax(0,7fr)}
.two,.cpu{grid-template-columns:minmax(0,1fr)}
.three{grid-template-columns:repeat(2,minmax(0,1fr))}
.scroll{overflow:visible}
figure svg{min-width:0;max-width:13cm}
.three svg{max-width:8.6cm}
.paper{display:block}
details:not([open]){display:none}
.stamp{columns:2}
.stamp div,tr,figure,details>summary{break-inside:avoid}
table{break-inside:avoid}
.long table{break-inside:auto}
h2,h3,h2+p,caption,thead{break-after:avoid}
table{font-size:.8rem}
th,td{padding-right:8px}
td.text{overflow-wrap:anywhere}
pre{max-height:none}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
}
`;

/** All rules; the dark colours never reach paper. */
export const styleSheet =
  `:root{color-scheme:light dark;${light}}\n` +
  `@media screen and (prefers-color-scheme:dark){:root{${dark}}}\n` +
  `${base}${tables}${figures}${narrow}${paper}`;
