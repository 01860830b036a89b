// Clients written in Go, driven by tests: one program, a verb and a library at a time.
//
//	clients LIBRARY produce BOOTSTRAP TOPIC COUNT    writes COUNT records, prints "written COUNT"
//	clients LIBRARY consume BOOTSTRAP TOPIC GROUP    subscribes; "read PARTITION OFFSET" a record,
//	                                                 committed soon; until it is killed
//	clients franz-go share BOOTSTRAP TOPIC GROUP WAY reads a queue; what it says: franz_share.go
//	clients LIBRARY survey BOOTSTRAP TOPIC GROUP     asks as monitoring tools do, prints JSON
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"
)

const (
	session   = 3 * time.Second
	heartbeat = 300 * time.Millisecond
	patience  = 30 * time.Second
)

type library struct {
	produce func(bootstrap, topic string, count int)
	consume func(bootstrap, topic, group string)
	survey  func(bootstrap, topic, group string) map[string]any
}

var libraries = map[string]library{
	"franz-go": {franzProduce, franzConsume, franzSurvey},
	"sarama":   {saramaProduce, saramaConsume, saramaSurvey},
	"kafka-go": {segmentioProduce, segmentioConsume, nil},
}

func main() {
	log.SetFlags(0)
	if len(os.Args) == 7 && os.Args[1] == "franz-go" && os.Args[2] == "share" {
		franzShare(os.Args[3], os.Args[4], os.Args[5], os.Args[6])
		return
	}
	if len(os.Args) != 6 {
		log.Fatalf("usage: %s LIBRARY VERB BOOTSTRAP TOPIC ARGUMENT", os.Args[0])
	}
	used, known := libraries[os.Args[1]]
	if !known {
		log.Fatalf("no such library: %s", os.Args[1])
	}
	bootstrap, topic, argument := os.Args[3], os.Args[4], os.Args[5]
	switch os.Args[2] {
	case "produce":
		count, err := strconv.Atoi(argument)
		must(err)
		used.produce(bootstrap, topic, count)
		fmt.Println("written", count)
	case "consume":
		used.consume(bootstrap, topic, argument)
	case "survey":
		must(json.NewEncoder(os.Stdout).Encode(used.survey(bootstrap, topic, argument)))
	default:
		log.Fatalf("no such verb: %s", os.Args[2])
	}
}

func read(partition int32, offset int64) {
	fmt.Println("read", partition, offset)
}

func value(number int) []byte {
	return []byte(strconv.Itoa(number))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
