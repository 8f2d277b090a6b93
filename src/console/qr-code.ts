/** QR codes as drawings: for a machine that has a camera and no clipboard. */
import qrcode from 'qrcode-generator';
import { type Html, html } from '../pages/html.ts';

/** Cells around the code that readers need to be empty. */
const MARGIN = 4;

export function qrCode(text: string, label: string): Html {
  const code = qrcode(0, 'M');
  code.addData(text);
  code.make();
  const count = code.getModuleCount();
  const numbers = Array.from({ length: count }, (_, index) => index);
  const cells = numbers.flatMap((row) =>
    numbers
      .filter((column) => code.isDark(row, column))
      .map((column) => `M${column + MARGIN} ${row + MARGIN}h1v1h-1z`),
  );
  const size = count + 2 * MARGIN;
  return html`<svg class="qr" viewBox="0 0 ${size.toString()} ${size.toString()}" role="img" aria-label="${label}" shape-rendering="crispEdges"><rect width="100%" height="100%" fill="#fff"/><path d="${cells.join('')}" fill="#000"/></svg>`;
}
