// The classes of Open MPI's bindings for C++ (MPI::; MPI 2.2, chapter 16 and section A.4, which
// later standards have no more), as far as its library shows them: virtual functions.
//
// All else of the bindings is inline, and so part of the programs. A program and the library share
// what is here: the order of the virtual functions, which is the order in which Open MPI declares
// them, the names, and objects of a pointer to these functions and a handle.
// tests/mpi/foreign/languages_test.cc compares the tables of functions with Open MPI's.
//
// Threads, blocking and errors are those of the C function that each of them calls.
#pragma once

// Parts of names that the linker sees.
#define MPI_ABI_Comm ompi_communicator_t
#define MPI_ABI_Datatype ompi_datatype_t
#define MPI_ABI_Win ompi_win_t
#include "mpi.h"

namespace ferry::bindings {

inline size_t SizeOf(int count) { return count < 0 ? 0 : static_cast<size_t>(count); }

// An array of truth values in C, of at most `count` elements, and a program's array of bool.
class Truths {
 public:
  explicit Truths(int count) : values_(new int[SizeOf(count)]{}) {}
  Truths(int count, const bool* given) : Truths(count) {
    for (int i = 0; i < count; ++i) {
      values_[i] = given[i] ? 1 : 0;
    }
  }
  ~Truths() { delete[] values_; }
  Truths(const Truths&) = delete;
  Truths& operator=(const Truths&) = delete;
  int* get() const { return values_; }
  void Give(int count, bool* wanted) const {
    for (int i = 0; i < count; ++i) {
      wanted[i] = values_[i] != 0;
    }
  }

 private:
  int* const values_;
};

// The handles of an array of objects.
template <typename Handle, typename Class>
class HandlesOf {
 public:
  HandlesOf(int count, const Class* given) : values_(new Handle[SizeOf(count)]) {
    for (int i = 0; i < count; ++i) {
      values_[i] = given[i].handle();
    }
  }
  ~HandlesOf() { delete[] values_; }
  HandlesOf(const HandlesOf&) = delete;
  HandlesOf& operator=(const HandlesOf&) = delete;
  Handle* get() const { return values_; }

 private:
  Handle* const values_;
};

}  // namespace ferry::bindings

// NOLINTBEGIN(readability-identifier-naming): the names of the standard.
#pragma GCC visibility push(default)
namespace MPI {

using Aint = MPI_Aint;
using Offset = MPI_Offset;

class Cartcomm;
class Comm;
class Graphcomm;
class Intercomm;

// Declares the members that each class has beside its virtual functions. Its destructor is defined
// in bindings.cc, so that the compiler puts the class's table of virtual functions there.
#define FERRY_CLASS(Class, Handle, none)    \
 public:                                    \
  explicit Class(Handle h) : handle_(h) {}  \
  Class(const Class&) = default;            \
  Class& operator=(const Class&) = default; \
  virtual ~Class();                         \
  Handle handle() const { return handle_; } \
                                            \
 protected:                                 \
  Handle handle_ = none;                    \
                                            \
 public:

#define FERRY_DERIVED(Class, Base, Handle)  \
 public:                                    \
  explicit Class(Handle h) : Base(h) {}     \
  Class(const Class&) = default;            \
  Class& operator=(const Class&) = default; \
  ~Class() override;

// ---- Small classes ------------------------------------------------------------------------------

class Errhandler {
  FERRY_CLASS(Errhandler, MPI_Errhandler, MPI_ERRHANDLER_NULL)
  virtual void Free() { MPI_Errhandler_free(&handle_); }
};

class Group {
  FERRY_CLASS(Group, MPI_Group, MPI_GROUP_NULL)
  virtual int Get_size() const { return Number(MPI_Group_size); }
  virtual int Get_rank() const { return Number(MPI_Group_rank); }
  virtual Group Incl(int n, const int ranks[]) const { return Part(MPI_Group_incl, n, ranks); }
  virtual Group Excl(int n, const int ranks[]) const { return Part(MPI_Group_excl, n, ranks); }
  virtual Group Range_incl(int n, const int ranges[][3]) const {
    return Part(MPI_Group_range_incl, n, const_cast<int(*)[3]>(ranges));
  }
  virtual Group Range_excl(int n, const int ranges[][3]) const {
    return Part(MPI_Group_range_excl, n, const_cast<int(*)[3]>(ranges));
  }
  virtual void Free() { MPI_Group_free(&handle_); }

 private:
  int Number(int (*get)(MPI_Group, int*)) const {
    int number = 0;
    get(handle_, &number);
    return number;
  }
  template <typename Make, typename Ranks>
  Group Part(Make make, int n, Ranks ranks) const {
    MPI_Group made = MPI_GROUP_NULL;
    make(handle_, n, ranks, &made);
    return Group(made);
  }
};

class Info {
  FERRY_CLASS(Info, MPI_Info, MPI_INFO_NULL)
  virtual void Delete(const char* key) { MPI_Info_delete(handle_, key); }
  virtual Info Dup() const {
    MPI_Info made = MPI_INFO_NULL;
    MPI_Info_dup(handle_, &made);
    return Info(made);
  }
  virtual void Free() { MPI_Info_free(&handle_); }
  virtual bool Get(const char* key, int valuelen, char* value) const {
    int flag = 0;
    MPI_Info_get(handle_, key, valuelen, value, &flag);
    return flag != 0;
  }
  virtual int Get_nkeys() const {
    int number = 0;
    MPI_Info_get_nkeys(handle_, &number);
    return number;
  }
  virtual void Get_nthkey(int n, char* key) const { MPI_Info_get_nthkey(handle_, n, key); }
  virtual bool Get_valuelen(const char* key, int& valuelen) const {
    int flag = 0;
    MPI_Info_get_valuelen(handle_, key, &valuelen, &flag);
    return flag != 0;
  }
  virtual void Set(const char* key, const char* value) { MPI_Info_set(handle_, key, value); }
};

// ---- Datatypes ----------------------------------------------------------------------------------

class Datatype {
  FERRY_CLASS(Datatype, MPI_Datatype, MPI_DATATYPE_NULL)
  using Copy_attr_function = int(const Datatype&, int, void*, const void*, void*, bool&);
  using Delete_attr_function = int(Datatype&, int, void*, void*);

  Datatype() = default;
  virtual Datatype Create_contiguous(int count) const { return Made(MPI_Type_contiguous, count); }
  virtual Datatype Create_vector(int count, int blocklength, int stride) const {
    return Made(MPI_Type_vector, count, blocklength, stride);
  }
  virtual Datatype Create_indexed(int count, const int lengths[], const int places[]) const {
    return Made(MPI_Type_indexed, count, lengths, places);
  }
  virtual Datatype Create_hindexed(int count, const int lengths[], const Aint places[]) const {
    return Made(MPI_Type_create_hindexed, count, lengths, places);
  }
  virtual Datatype Create_hvector(int count, int blocklength, Aint stride) const {
    return Made(MPI_Type_create_hvector, count, blocklength, stride);
  }
  virtual Datatype Create_indexed_block(int count, int blocklength, const int places[]) const {
    return Made(MPI_Type_create_indexed_block, count, blocklength, places);
  }
  virtual Datatype Create_resized(Aint lb, Aint extent) const {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(handle_, lb, extent, &made);
    return Datatype(made);
  }
  virtual int Get_size() const {
    int size = 0;
    MPI_Type_size(handle_, &size);
    return size;
  }
  virtual void Get_extent(Aint& lb, Aint& extent) const {
    MPI_Type_get_extent(handle_, &lb, &extent);
  }
  virtual void Get_true_extent(Aint& lb, Aint& extent) const {
    MPI_Type_get_true_extent(handle_, &lb, &extent);
  }
  virtual void Commit() { MPI_Type_commit(&handle_); }
  virtual void Free();
  virtual void Pack(const void* in, int incount, void* out, int outsize, int& position,
                    const Comm& comm) const;
  virtual void Unpack(const void* in, int insize, void* out, int outcount, int& position,
                      const Comm& comm) const;
  virtual int Pack_size(int incount, const Comm& comm) const;
  virtual void Pack_external(const char* datarep, const void* in, int incount, void* out,
                             Aint outsize, Aint& position) const {
    MPI_Pack_external(datarep, in, incount, handle_, out, outsize, &position);
  }
  virtual Aint Pack_external_size(const char* datarep, int incount) const {
    MPI_Aint size = 0;
    MPI_Pack_external_size(datarep, incount, handle_, &size);
    return size;
  }
  virtual void Unpack_external(const char* datarep, const void* in, Aint insize, Aint& position,
                               void* out, int outcount) const {
    MPI_Unpack_external(datarep, in, insize, &position, out, outcount, handle_);
  }
  virtual Datatype Create_subarray(int ndims, const int sizes[], const int subsizes[],
                                   const int starts[], int order) const {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(ndims, sizes, subsizes, starts, order, handle_, &made);
    return Datatype(made);
  }
  virtual Datatype Create_darray(int size, int rank, int ndims, const int gsizes[],
                                 const int distribs[], const int dargs[], const int psizes[],
                                 int order) const {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_create_darray(size, rank, ndims, gsizes, distribs, dargs, psizes, order, handle_,
                           &made);
    return Datatype(made);
  }
  virtual Datatype Dup() const {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_dup(handle_, &made);
    return Datatype(made);
  }
  virtual void Delete_attr(int keyval) { MPI_Type_delete_attr(handle_, keyval); }
  virtual bool Get_attr(int keyval, void* value) const {
    int flag = 0;
    MPI_Type_get_attr(handle_, keyval, value, &flag);
    return flag != 0;
  }
  virtual void Get_contents(int max_integers, int max_addresses, int max_datatypes, int integers[],
                            Aint addresses[], Datatype datatypes[]) const;
  virtual void Get_envelope(int& integers, int& addresses, int& datatypes, int& combiner) const {
    MPI_Type_get_envelope(handle_, &integers, &addresses, &datatypes, &combiner);
  }
  virtual void Get_name(char* name, int& length) const {
    MPI_Type_get_name(handle_, name, &length);
  }
  virtual void Set_attr(int keyval, const void* value) {
    MPI_Type_set_attr(handle_, keyval, const_cast<void*>(value));
  }
  virtual void Set_name(const char* name) { MPI_Type_set_name(handle_, name); }

 protected:
  static int do_create_keyval(MPI_Type_copy_attr_function* c_copy,
                              MPI_Type_delete_attr_function* c_delete, Copy_attr_function* copy,
                              Delete_attr_function* remove, void* extra_state, int& keyval);

 private:
  template <typename Make, typename... Arguments>
  Datatype Made(Make make, Arguments... arguments) const {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    make(arguments..., handle_, &made);
    return Datatype(made);
  }
};

class Op {
  FERRY_CLASS(Op, MPI_Op, MPI_OP_NULL)
  using User_function = void(const void*, void*, int, const Datatype&);

  virtual void Init(User_function* function, bool commute);
  virtual void Free() { MPI_Op_free(&handle_); }
  virtual void Reduce_local(const void* in, void* inout, int count, const Datatype& type) const {
    MPI_Reduce_local(in, inout, count, type.handle(), handle_);
  }
  virtual bool Is_commutative() const {
    int flag = 0;
    MPI_Op_commutative(handle_, &flag);
    return flag != 0;
  }
};

// ---- Statuses and requests ----------------------------------------------------------------------

class Status {
 public:
  explicit Status(const MPI_Status& status) : status_(status) {}
  Status(const Status&) = default;
  Status& operator=(const Status&) = default;
  virtual ~Status();
  virtual int Get_count(const Datatype& type) const {
    int count = 0;
    MPI_Get_count(&status_, type.handle(), &count);
    return count;
  }
  virtual bool Is_cancelled() const {
    int flag = 0;
    MPI_Test_cancelled(&status_, &flag);
    return flag != 0;
  }
  virtual int Get_elements(const Datatype& type) const {
    int count = 0;
    MPI_Get_elements(&status_, type.handle(), &count);
    return count;
  }
  virtual int Get_source() const { return status_.MPI_SOURCE; }
  virtual void Set_source(int source) { status_.MPI_SOURCE = source; }
  virtual int Get_tag() const { return status_.MPI_TAG; }
  virtual void Set_tag(int tag) { status_.MPI_TAG = tag; }
  virtual int Get_error() const { return status_.MPI_ERROR; }
  virtual void Set_error(int error) { status_.MPI_ERROR = error; }
  virtual void Set_elements(const Datatype& type, int count) {
    MPI_Status_set_elements(&status_, type.handle(), count);
  }
  virtual void Set_cancelled(bool flag) { MPI_Status_set_cancelled(&status_, flag ? 1 : 0); }

  MPI_Status* get() { return &status_; }

 private:
  MPI_Status status_;
};

class Request {
  FERRY_CLASS(Request, MPI_Request, MPI_REQUEST_NULL)
  virtual void Wait(Status& status) { MPI_Wait(&handle_, status.get()); }
  virtual void Wait() { MPI_Wait(&handle_, MPI_STATUS_IGNORE); }
  virtual bool Test(Status& status) { return Tested(status.get()); }
  virtual bool Test() { return Tested(MPI_STATUS_IGNORE); }
  virtual void Free() { MPI_Request_free(&handle_); }
  virtual void Cancel() const {
    MPI_Request request = handle_;
    MPI_Cancel(&request);
  }
  virtual bool Get_status(Status& status) const { return IsComplete(status.get()); }
  virtual bool Get_status() const { return IsComplete(MPI_STATUS_IGNORE); }

 private:
  bool Tested(MPI_Status* status) {
    int flag = 0;
    MPI_Test(&handle_, &flag, status);
    return flag != 0;
  }
  bool IsComplete(MPI_Status* status) const {
    int flag = 0;
    MPI_Request_get_status(handle_, &flag, status);
    return flag != 0;
  }
};

class Prequest : public Request {
  FERRY_DERIVED(Prequest, Request, MPI_Request)
  virtual void Start() { MPI_Start(&handle_); }
};

class Grequest : public Request {
  FERRY_DERIVED(Grequest, Request, MPI_Request)
  using Query_function = int(void*, Status&);
  using Free_function = int(void*);
  using Cancel_function = int(void*, bool);
  // The extra state of the C request that a program starts.
  struct Intercept_data_t {
    void* extra_state;
    Query_function* query;
    Free_function* free;
    Cancel_function* cancel;
  };

  virtual void Complete() { MPI_Grequest_complete(handle_); }
};

}  // namespace MPI
// NOLINTEND(readability-identifier-naming)
