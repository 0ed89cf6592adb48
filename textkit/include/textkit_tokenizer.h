/* SPDX-License-Identifier: Apache-2.0
 *
 * textkit, part tokenizer: text <-> token ids. Shared rules: textkit.h.
 */
#ifndef TESSERA_TEXTKIT_TOKENIZER_H_
#define TESSERA_TEXTKIT_TOKENIZER_H_

#include "textkit.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_TEXTKIT_TOKENIZER_H_ */
