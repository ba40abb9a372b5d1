// Moments as every page writes them: the year first, 24 hours, in the browser's zone.

const two = (number) => String(number).padStart(2, "0");

export function inWords(milliseconds) {
  const at = new Date(milliseconds);
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":")}`;
}
