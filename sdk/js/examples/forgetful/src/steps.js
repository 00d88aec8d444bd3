// Writes to every reader and counts what it sent. The count is saved, and a retry does not begin from it.

import { increment, steps, to } from "interlock";

function mail(letter) {
  const { readers } = letter.data();
  for (let reader = 0; reader < readers; reader++) {
    letter.save({ set: [increment("data.sent", 1)] });
  }
  return letter.transition(to("sent"));
}

export default steps({ mail });
