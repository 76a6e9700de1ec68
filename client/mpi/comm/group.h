// The object of an MPI_Group. MPI 5.0, section 7.3.
#pragma once

#include <utility>

#include "client/mpi/group/rank_set.h"
#include "client/mpi/handle/object.h"

namespace ferry::mpi {

class Group : public Object {
 public:
  explicit Group(RankSet ranks) : ranks(std::move(ranks)) {}

  const RankSet ranks;
};

}  // namespace ferry::mpi
