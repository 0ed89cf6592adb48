// SPDX-License-Identifier: Apache-2.0
//
// OpenTransport: the way from a process that mpirun started to the others. MPI is a module
// (libtessera_mpi.so) that is loaded only then: a process of its own neither needs nor loads it.
#pragma once

#include <memory>

#include "base/status.h"
#include "runtime/transport.h"

namespace tessera::runtime {

/// Of a job of so many processes. Once a process. kUnimplemented where this build has no MPI,
/// kUnavailable when it does not start.
Result<std::shared_ptr<Transport>> OpenTransport(int processes);

/// What the module exports, under this name.
inline constexpr char kMakeTransport[] = "tessera_make_transport";
using MakeTransportFn = Transport* (*)();  // Null: it did not start.

}  // namespace tessera::runtime
