// Stands in for whoever rents out nodes. The name of the image decides what happens, so that each path of the machine
// can be walked on purpose.

/** How the nodes of a pool are. */
export type Health = "up" | "starting" | "withdrawn";

/** Looks at the nodes for the n-th time, from 1. */
export function health(image: string, look: number): Health {
  if (image.includes("withdrawn")) return "withdrawn";
  if (image.includes("never-starts") || (image.includes("slow-start") && look < 3)) return "starting";
  return "up";
}
