// A typesetter: one line of JSON in, one line of JSON out.
//   {"tex": "x^2", "display": false}  ->  {"html": "<mjx-container ...>"}
//   {"css": true}                     ->  {"css": "..."}
// Arguments: the directory of MathJax, and the macros as JSON.
const [, , directory, macros] = process.argv;
const lines = require("readline").createInterface({input: process.stdin});

require(directory + "/node-main.js").init({
  loader: {
    versionWarnings: false,
    paths: {mathjax: directory},
    load: ["input/tex", "output/chtml", "adaptors/liteDOM", "a11y/assistive-mml"],
    require,
  },
  tex: {macros: JSON.parse(macros)},
  chtml: {matchFontHeight: false, adaptiveCSS: false, fontURL: "FONTS"},
}).then(async (MathJax) => {
  const adaptor = MathJax.startup.adaptor;
  for await (const line of lines) {
    const {tex, display, css} = JSON.parse(line);
    const answer = css
      ? {css: adaptor.textContent(MathJax.chtmlStylesheet())}
      : {html: adaptor.outerHTML(await MathJax.tex2chtmlPromise(tex, {display}))};
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
});
