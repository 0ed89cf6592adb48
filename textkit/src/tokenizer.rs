// SPDX-License-Identifier: Apache-2.0
//! Tokenizers (`textkit_tokenizer.h`).
