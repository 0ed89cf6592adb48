// SPDX-License-Identifier: Apache-2.0
//! Output constraints (`textkit_constraint.h`).
