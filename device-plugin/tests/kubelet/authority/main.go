// A client that calls a device plugin the way the kubelet does, with the :authority that it is told to send.
//
// Usage: authority SOCKET localhost|path|default. "path" is what kubelets sent before kubernetes/kubernetes#112597: the
// socket's path as it is. "default" is what grpc-go makes of the path by itself today. Prints the status code and its
// message; of an answer, the field numbers that it has.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
)

const method = "/v1beta1.DevicePlugin/GetDevicePluginOptions"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: authority SOCKET localhost|path|default")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer, err := call(ctx, os.Args[1], os.Args[2])
	if err != nil {
		fmt.Printf("%s: %s\n", status.Code(err), status.Convert(err).Message())
		return
	}
	fmt.Printf("OK: fields %s\n", strings.Join(fields(answer), ","))
}

// Messages of the plugin's API are not generated here: an empty message keeps the fields that it does not know.
func call(ctx context.Context, socket, authority string) ([]byte, error) {
	connection, err := dial(ctx, socket, authority)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	answer := &emptypb.Empty{}
	err = connection.Invoke(ctx, method, &emptypb.Empty{}, answer)
	return answer.ProtoReflect().GetUnknown(), err
}

// As dial in the kubelet's pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go.
func dial(ctx context.Context, socket, authority string) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithBlock(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", address)
		}),
	}
	switch authority {
	case "default":
	case "path":
		options = append(options, grpc.WithAuthority(socket))
	default:
		options = append(options, grpc.WithAuthority(authority))
	}
	return grpc.DialContext(ctx, socket, options...)
}

func fields(message []byte) []string {
	var numbers []string
	for len(message) > 0 {
		number, _, size := protowire.ConsumeField(message)
		if size < 0 {
			return append(numbers, "broken")
		}
		numbers = append(numbers, fmt.Sprint(number))
		message = message[size:]
	}
	return numbers
}
