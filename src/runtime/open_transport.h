// SPDX-License-Identifier: Apache-2.0
//
// OpenTransport: whether this process is one of several that mpirun started, and the way to the
// others. MPI is a module (libtessera_mpi.so) that is loaded only then: a process of its own
// neither needs nor loads it.
#pragma once

#include <memory>

#include "base/status.h"
#include "runtime/transport.h"

namespace tessera::runtime {

/// Processes of the job that this one belongs to; 1 when nobody says that there are more.
int JobSize();

/// Once a process. kUnimplemented where this build has no MPI, kUnavailable when it does not start.
Result<std::shared_ptr<Transport>> OpenTransport();

/// What the module exports, under this name.
inline constexpr char kMakeTransport[] = "tessera_make_transport";
using MakeTransportFn = Transport* (*)();  // Null: it did not start.

}  // namespace tessera::runtime
