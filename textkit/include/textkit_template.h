/* SPDX-License-Identifier: Apache-2.0
 *
 * textkit, part template: messages -> prompt text. Shared rules: textkit.h.
 */
#ifndef TESSERA_TEXTKIT_TEMPLATE_H_
#define TESSERA_TEXTKIT_TEMPLATE_H_

#include "textkit.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_TEXTKIT_TEMPLATE_H_ */
