// SPDX-License-Identifier: Apache-2.0
//! Chat templates (`textkit_template.h`).
