package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct { const char *data; int64_t length; } go_string;
typedef struct { void *data; int64_t length, capacity; } go_slice;
typedef struct { int64_t pinner; int32_t code; int64_t object; int32_t length; void *data; } message;

static message call_string(void *f, char *data, int64_t length) {
	go_string s = {data, length};
	return ((message (*)(go_string))f)(s);
}
static message call1(void *f, int64_t a) { return ((message (*)(int64_t))f)(a); }
static message call2(void *f, int64_t a, int64_t b) { return ((message (*)(int64_t, int64_t))f)(a, b); }
static message call3(void *f, int64_t a, int64_t b, int64_t c) { return ((message (*)(int64_t, int64_t, int64_t))f)(a, b, c); }
static message call_next(void *f, int64_t a, int64_t b, int64_t c, int32_t rows, int32_t encoding) {
	return ((message (*)(int64_t, int64_t, int64_t, int32_t, int32_t))f)(a, b, c, rows, encoding);
}
static message call_slice(void *f, int64_t a, int64_t b, void *data, int64_t length) {
	go_slice s = {data, length, length};
	return ((message (*)(int64_t, int64_t, go_slice))f)(a, b, s);
}
static void release(void *f, int64_t pinner) { ((int32_t (*)(int64_t))f)(pinner); }
*/
import "C"

import (
	"fmt"
	"unsafe"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// library is go-sql-spanner, Google's driver for database/sql, in the form of the C library that Google publishes. A
// function's answer consists of a number and of bytes. The number identifies a pool, a connection or a result. The
// bytes are a protobuf message.
type library struct {
	functions map[string]unsafe.Pointer
}

// driverError is an error of the driver, with the server's code.
type driverError struct {
	code codes.Code
	text string
}

func (e *driverError) Error() string { return fmt.Sprintf("%s: %s", e.code, e.text) }

func openLibrary(path string) (*library, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(name, C.RTLD_NOW)
	if handle == nil {
		return nil, fmt.Errorf("%s: %s", path, C.GoString(C.dlerror()))
	}
	l := &library{functions: map[string]unsafe.Pointer{}}
	for _, f := range []string{"Release", "CreatePool", "ClosePool", "CreateConnection", "CloseConnection", "Execute", "ExecuteBatch", "Metadata",
		"ResultSetStats", "Next", "CloseRows", "BeginTransaction", "Commit", "Rollback", "WriteMutations"} {
		symbol := C.CString(f)
		l.functions[f] = C.dlsym(handle, symbol)
		C.free(unsafe.Pointer(symbol))
		if l.functions[f] == nil {
			return nil, fmt.Errorf("%s has no function %s", path, f)
		}
	}
	return l, nil
}

// copyAnswer copies an answer out of the library's memory, and frees that memory.
func (l *library) copyAnswer(m C.message) (object int64, answer []byte, err error) {
	answer = C.GoBytes(m.data, m.length)
	if m.pinner != 0 {
		C.release(l.functions["Release"], m.pinner)
	}
	if m.code != 0 {
		status := &status.Status{}
		if err := proto.Unmarshal(answer, status); err != nil {
			return 0, nil, err
		}
		return 0, nil, &driverError{codes.Code(m.code), status.Message}
	}
	return int64(m.object), answer, nil
}

func (l *library) createPool(connection string) (int64, error) {
	text := C.CString(connection) // not freed, because the library keeps it
	pool, _, err := l.copyAnswer(C.call_string(l.functions["CreatePool"], text, C.int64_t(len(connection))))
	return pool, err
}

// call calls a function of the library that takes one to three numbers.
func (l *library) call(function string, numbers ...int64) (int64, []byte, error) {
	f, n := l.functions[function], make([]C.int64_t, 3)
	for i, number := range numbers {
		n[i] = C.int64_t(number)
	}
	switch len(numbers) {
	case 1:
		return l.copyAnswer(C.call1(f, n[0]))
	case 2:
		return l.copyAnswer(C.call2(f, n[0], n[1]))
	default:
		return l.copyAnswer(C.call3(f, n[0], n[1], n[2]))
	}
}

// send calls a function of the library that takes a pool, a connection and a protobuf message.
func (l *library) send(function string, pool, connection int64, request proto.Message) (int64, []byte, error) {
	bytes, err := proto.Marshal(request)
	if err != nil {
		return 0, nil, err
	}
	data := C.CBytes(bytes)
	defer C.free(data)
	return l.copyAnswer(C.call_slice(l.functions[function], C.int64_t(pool), C.int64_t(connection), data, C.int64_t(len(bytes))))
}

// next returns the next row of a result as an encoded ListValue. It returns no bytes after the last row.
func (l *library) next(pool, connection, rows int64) ([]byte, error) {
	_, answer, err := l.copyAnswer(C.call_next(l.functions["Next"], C.int64_t(pool), C.int64_t(connection), C.int64_t(rows), 1, 1))
	return answer, err
}
