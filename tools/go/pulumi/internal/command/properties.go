package command

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// plain returns the value below secret and output wrappers.
func plain(v resource.PropertyValue) resource.PropertyValue {
	for {
		switch {
		case v.IsSecret():
			v = v.SecretValue().Element
		case v.IsOutput():
			v = v.OutputValue().Element
		default:
			return v
		}
	}
}

func stringOr(m resource.PropertyMap, key resource.PropertyKey, otherwise string) string {
	if v := plain(m[key]); v.IsString() {
		return v.StringValue()
	}
	return otherwise
}

func hasString(m resource.PropertyMap, key resource.PropertyKey) bool {
	return stringOr(m, key, "") != ""
}

func numberOr(m resource.PropertyMap, key resource.PropertyKey, otherwise float64) float64 {
	if v := plain(m[key]); v.IsNumber() {
		return v.NumberValue()
	}
	return otherwise
}

func boolOr(m resource.PropertyMap, key resource.PropertyKey, otherwise bool) bool {
	if v := plain(m[key]); v.IsBool() {
		return v.BoolValue()
	}
	return otherwise
}

func object(m resource.PropertyMap, key resource.PropertyKey) (resource.PropertyMap, bool) {
	if v := plain(m[key]); v.IsObject() {
		return v.ObjectValue(), true
	}
	return nil, false
}

func stringList(m resource.PropertyMap, key resource.PropertyKey) ([]string, error) {
	v := plain(m[key])
	if v.IsNull() {
		return nil, nil
	}
	if !v.IsArray() {
		return nil, fmt.Errorf("%s must be a list of strings", key)
	}
	var list []string
	for _, item := range v.ArrayValue() {
		item = plain(item)
		if !item.IsString() {
			return nil, fmt.Errorf("%s must be a list of strings", key)
		}
		list = append(list, item.StringValue())
	}
	return list, nil
}

func stringMap(m resource.PropertyMap, key resource.PropertyKey) (map[string]string, error) {
	values, ok := object(m, key)
	if !ok {
		return nil, nil
	}
	result := make(map[string]string, len(values))
	for k, v := range values {
		v = plain(v)
		if !v.IsString() {
			return nil, fmt.Errorf("%s.%s must be a string", key, k)
		}
		result[string(k)] = v.StringValue()
	}
	return result, nil
}
