#include "client/mpi/channel/table.h"

namespace ferry::mpi {

const SelectionTable& CollectiveTable() {
  static const SelectionTable& table = *new SelectionTable();
  return table;
}

}  // namespace ferry::mpi
