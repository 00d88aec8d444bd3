// Stands in for whoever rents out nodes. The name of the image decides what happens, so that each path of the machine
// can be walked on purpose.

/** Looks at the nodes for the n-th time, from 1: `up`, `starting` or `withdrawn`. */
export function health(image, look) {
  if (image.includes("withdrawn")) return "withdrawn";
  if (image.includes("never-starts") || (image.includes("slow-start") && look < 3)) return "starting";
  return "up";
}
