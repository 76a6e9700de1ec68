// A message that a matched probe took out of the queue (MPI 5.0, section 3.8.2). libferry receives
// it at once into memory of its own, from where MPI_Mrecv takes it.
#pragma once

#include <cstdlib>

#include "client/core/front_end.h"
#include "client/mpi/base/object.h"
#include "client/mpi/comm/comm.h"

namespace ferry::mpi {

class MatchedMessage : public Object {
 public:
  MatchedMessage(Comm& comm, const client::FrontEnd::MatchedReceive& receive)
      : comm(Ref<Comm>::Share(&comm)), receive(receive) {}
  ~MatchedMessage() override { std::free(receive.buffer); }

  const Ref<Comm> comm;
  client::FrontEnd::MatchedReceive receive;
};

}  // namespace ferry::mpi
