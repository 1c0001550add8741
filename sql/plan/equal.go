package plan

import (
	"reflect"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// EqualModuloLiterals reports whether plans a and b have the same operators, except that b may have parameters in
// place of some constants of a. literals holds the values of these parameters by name. Plan.Read is not compared,
// because it follows from the operators.
func EqualModuloLiterals(a, b *Plan, literals map[string]value.Value) bool {
	m := matcher{literals}
	left, right := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range left.NumField() {
		name := left.Type().Field(i).Name
		if name != "Params" && name != "Read" && !m.equal(left.Field(i), right.Field(i)) {
			return false
		}
	}
	return true
}

// matcher compares two plans by reflection, down to constants and parameters. Tables, indexes and columns are equal
// only if they are the same objects.
type matcher struct{ literals map[string]value.Value }

// descriptorPackages is the path prefix of the protobuf packages. Descriptors of these packages are equal only if
// they are the same objects.
const descriptorPackages = "google.golang.org/protobuf/"

var catalogPackage = reflect.TypeFor[schema.Table]().PkgPath()

func (m matcher) equal(a, b reflect.Value) bool {
	if a.Kind() != b.Kind() || a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Interface:
		return m.equalInterfaces(a, b)
	case reflect.Pointer:
		if a.Pointer() == b.Pointer() || a.IsNil() || b.IsNil() {
			return a.Pointer() == b.Pointer()
		}
		path := a.Type().Elem().PkgPath()
		return path != catalogPackage && !strings.HasPrefix(path, descriptorPackages) && m.equal(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !m.equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			return false
		}
		for i := range a.Len() {
			if !m.equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return a.Comparable() && a.Equal(b)
}

func (m matcher) equalInterfaces(a, b reflect.Value) bool {
	if a.IsNil() || b.IsNil() {
		return a.IsNil() && b.IsNil()
	}
	switch b := b.Interface().(type) {
	case *Parameter:
		return m.equalsParameter(a.Interface(), b)
	case *tree.Literal:
		a, ok := a.Interface().(*tree.Literal)
		return ok && equalConstants(a, b)
	}
	return m.equal(a.Elem(), b.Elem())
}

// equalsParameter reports whether a is the parameter b, or a literal with the value of b. It compares parameters by
// name, because each plan numbers its parameters in its own way.
func (m matcher) equalsParameter(a any, b *Parameter) bool {
	switch a := a.(type) {
	case *Parameter:
		return a.Name == b.Name && a.T.Equal(b.T)
	case *tree.Literal:
		v, ok := m.literals[b.Name]
		return ok && equalConstants(a, &tree.Literal{T: b.T, Value: v})
	}
	return false
}

// equalConstants compares constants by their printed forms, which distinguish 0.0 from -0.0.
func equalConstants(a, b *tree.Literal) bool {
	return a.T.Equal(b.T) && a.Value.IsNull() == b.Value.IsNull() && tree.FormatLiteral(a) == tree.FormatLiteral(b)
}
