// SPDX-License-Identifier: Apache-2.0
#include "certify/text.h"

namespace tessera::certify {

const std::string_view kText =
    R"(The harbour was quiet before dawn. A single lamp burned at the end of the pier, and the water
under it moved so slowly that the light seemed to rest on glass. Anna had walked down from the
village with a basket of bread, because the boats would come in hungry, as they always did, and
because she liked to be the first to hear what the night had been like out there.

"You are early," said the old man who mended the nets. He did not look up.

"I am always early. It is you who are late to notice."

He laughed at that, and pulled the thread tight. "There was fog past the second buoy. They will have
waited for it to lift. Fishing is mostly waiting, and the rest of it is work."

A map is a promise that someone went before you. The first maps of this coast were drawn from memory
by sailors who could not agree on the number of islands, so the printers drew all of them, and for a
hundred years ships steered around rocks that had never existed. When the survey of 1846 removed
eleven islands from the chart, the captains complained that the sea had become less safe.

Water boils at 100 degrees Celsius at sea level, but at an altitude of 3,000 metres it boils at about
90 degrees, because the pressure of the air is lower. This is why rice takes longer to cook in the
mountains. The rule of thumb is simple: for every 300 metres of height, the boiling point falls by one
degree.

To find the largest common divisor of two numbers, divide the larger by the smaller and keep the
remainder; then repeat with the smaller number and that remainder until nothing is left over.

def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a

assert gcd(48, 36) == 12

The following year the council published its accounts. Of every ten coins collected, four were spent
on the sea wall, three on the school, two on roads, and one was set aside for storms. Nobody thanked
the council for the wall until the winter it held.

Der Wind kam aus dem Westen und brachte Regen. Die Kinder liefen nach Hause, und in den Fenstern ging
ein Licht nach dem anderen an.

Question: If a train leaves at 9:40 and the journey takes two hours and thirty-five minutes, when does
it arrive?
Answer: Two hours after 9:40 is 11:40, and thirty-five minutes later it is 12:15. The train arrives at
12:15.

When the boats came in at last, the sun was already above the roofs. They had caught little, but all
of them were there, and Anna counted them twice, the way one counts something one is afraid to lose.
)";

}  // namespace tessera::certify
