package plan

import (
	"reflect"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Same says whether plan b does what plan a does, operator for operator, with parameters in the place of some of a's constants.
// literals are the values of these parameters, by name.
func Same(a, b *Plan, literals map[string]value.Value) bool {
	m := matcher{literals}
	left, right := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range left.NumField() {
		f := left.Type().Field(i)
		if f.IsExported() && f.Name != "Params" && !m.same(left.Field(i), right.Field(i)) {
			return false
		}
	}
	return true
}

// matcher compares plans part by part, whatever they are made of.
type matcher struct{ literals map[string]value.Value }

var catalogPackage = reflect.TypeFor[schema.Table]().PkgPath()

func (m matcher) same(a, b reflect.Value) bool {
	if a.Kind() != b.Kind() || a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Interface:
		return m.sameInterface(a, b)
	case reflect.Pointer:
		if a.Pointer() == b.Pointer() || a.IsNil() || b.IsNil() {
			return a.Pointer() == b.Pointer()
		}
		return a.Type().Elem().PkgPath() != catalogPackage && m.same(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !m.same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			return false
		}
		for i := range a.Len() {
			if !m.same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return a.Comparable() && a.Equal(b)
}

func (m matcher) sameInterface(a, b reflect.Value) bool {
	if a.IsNil() || b.IsNil() {
		return a.IsNil() && b.IsNil()
	}
	switch b := b.Interface().(type) {
	case *Parameter:
		return m.sameParameter(a.Interface(), b)
	case *Const:
		a, ok := a.Interface().(*Const)
		return ok && sameConstant(a, b)
	}
	return m.same(a.Elem(), b.Elem())
}

// sameParameter compares parameters by name: their places differ.
func (m matcher) sameParameter(a any, b *Parameter) bool {
	switch a := a.(type) {
	case *Parameter:
		return a.Name == b.Name && a.T.Equal(b.T)
	case *Const:
		v, ok := m.literals[b.Name]
		return ok && sameConstant(a, &Const{T: b.T, Value: v})
	}
	return false
}

// sameConstant compares what is printed, which tells apart 0.0 and -0.0.
func sameConstant(a, b *Const) bool {
	return a.T.Equal(b.T) && a.Value.IsNull() == b.Value.IsNull() &&
		tree.FormatLiteral(&tree.Literal{T: a.T, Value: a.Value}) == tree.FormatLiteral(&tree.Literal{T: b.T, Value: b.Value})
}
