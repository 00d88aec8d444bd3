// Writes to every reader and counts what it sent. Whoever goes on from a save begins with the next reader.

import { increment, steps, to } from "interlock";

function mail(letter) {
  const { readers, sent } = letter.data();
  for (let reader = sent; reader < readers; reader++) {
    letter.save({ set: [increment("data.sent", 1)] });
  }
  return letter.transition(to("sent"));
}

export default steps({ mail });
